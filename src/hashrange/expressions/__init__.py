"""The expression languages: turn texts and placeholders of a request into functions of items.

    lexer          text to tokens, shared with PartiQL
    tree           the trees and their printer
    parser         tokens to trees: the four grammars
    reserved       the reserved words, and the text of their error
    substitutions  ExpressionAttributeNames and ExpressionAttributeValues
    preparing      the code that all languages share: names, values, cache and errors
    words          refuses reserved words, and functions in the wrong place
    operands       the rules for operands that can be checked without an item
    paths          document paths: read, sparse copy, overlap
    conditions     condition and filter expressions
    key_conditions  key conditions
    search_conditions  conditions of a vector search
    projections    projections
    updates        updates
    memo           processes no large value of a request twice
    legacy         the parameters that came before expressions, with the same results

An operation makes one `Substitutions` of its request, prepares each expression with it, and then calls
`check_all_used`. All of these raise ValidationException and nothing else.
"""

from hashrange.expressions import legacy
from hashrange.expressions.conditions import Condition, condition
from hashrange.expressions.key_conditions import INDEXABLE, KeyComparison, KeyCondition, key_condition
from hashrange.expressions.projections import Projection, projection
from hashrange.expressions.search_conditions import SearchCondition, search_condition
from hashrange.expressions.substitutions import MapViolation, Substitutions
from hashrange.expressions.updates import Update, update

__all__ = [
    "INDEXABLE",
    "Condition",
    "KeyComparison",
    "KeyCondition",
    "MapViolation",
    "Projection",
    "SearchCondition",
    "Substitutions",
    "Update",
    "condition",
    "key_condition",
    "legacy",
    "projection",
    "search_condition",
    "update",
]
