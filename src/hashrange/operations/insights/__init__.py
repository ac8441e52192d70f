"""Contributor insights: which keys of a table or a global index are used most, and throttled most.

    contributor_insights  UpdateContributorInsights, DescribeContributorInsights, ListContributorInsights
"""
