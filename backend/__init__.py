"""The running system: worker processes inside Spark, transport, statement execution, supervisor, command line.

Applications import `millrace`, the face of the client library (`backend.client`).
"""
