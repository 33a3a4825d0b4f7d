"""HTTP/JSON: the client library's views, tables, transactions and program for any language.

    status           what the cluster says of itself, open to everyone who reaches the port
    authentication   who asks: HTTP Basic with the accounts of MySQL
    bodies           what requests and answers consist of
    values           SQL values as JSON, both ways
    answers          answers and errors, with their status codes
    interface        the requests themselves
    description      the OpenAPI document of all this
    connections      those that ask for nothing end
    server           listening, in a process of its own (`python -m backend.http`)

Nothing is known here that the client library does not know; privileges are checked by
`controller.privileges`, as over MySQL.
"""
