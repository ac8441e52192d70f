"""The expression languages: text and placeholders of a request to functions of items.

    lexer          text to tokens, shared with PartiQL
    tree           the trees and their printer
    parser         tokens to trees: the four grammars
    reserved       the reserved words
    substitutions  ExpressionAttributeNames and ExpressionAttributeValues
    preparing      names, values, cache and errors: what the languages share
    words          reserved words and functions where they may not stand
    operands       the rules for operands that need no item
    paths          document paths: read, sparse copy, overlap
    conditions     condition and filter expressions
    key_conditions key conditions
    projections    projections
    updates        updates
    legacy         the parameters that came before expressions, with the same results

An operation makes one `Substitutions` of its request, prepares each expression with it, and then calls
`check_all_used`. All of these raise ValidationException and nothing else.
"""

from hashrange.expressions import legacy
from hashrange.expressions.conditions import Condition, condition
from hashrange.expressions.key_conditions import KeyComparison, key_condition
from hashrange.expressions.projections import Projection, projection
from hashrange.expressions.substitutions import Substitutions
from hashrange.expressions.updates import Update, update

__all__ = [
    "Condition",
    "KeyComparison",
    "Projection",
    "Substitutions",
    "Update",
    "condition",
    "key_condition",
    "legacy",
    "projection",
    "update",
]
