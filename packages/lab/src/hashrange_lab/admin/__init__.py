"""The endpoints of the lab on the admin plane."""

from typing import Final

from hashrange_lab.admin import costs, heat, lab, recording

ENDPOINTS: Final = (*heat.ENDPOINTS, *costs.ENDPOINTS, *lab.ENDPOINTS, *recording.ENDPOINTS)
