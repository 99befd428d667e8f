"""What a master answers over HTTP: SeaTunnel's REST v2, our own /api, metrics, and who may ask.

Read `route.py` first: every path is one declaration with its permission, its shapes and its answer;
`app.py` serves them, and the OpenAPI document, the tests of permissions and the client's shapes are
read from the same table.
"""
