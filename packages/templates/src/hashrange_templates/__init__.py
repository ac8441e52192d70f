"""Templates: tables from the files in which other programs declare them.

    reading         recognises the format of a file by its content, and reads its tables
    forms           which properties a declaration has, and what they hold
    cloudformation  a CloudFormation or SAM template, in YAML or JSON
    resources       the properties of a template's tables, and what becomes of each
    intrinsics      the functions, parameters and conditions of a template
    terraform       ``terraform show -json`` of a plan or a state
    arguments       the arguments of Terraform's resources
    documents       JSON for and of ``aws dynamodb create-table``; a NoSQL Workbench model
    ring            what templates add to Hashrange

A file becomes `hashrange.testing.declarations.Declaration`s, which `LocalDatabase.create_tables` and the
pytest plugin make. What a file declares is made, refused, or noted (`Declaration.notes`); properties that
make no difference are `forms.Idle`.
"""
