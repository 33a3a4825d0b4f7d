"""The MySQL face: wire protocol, sessions, introspection. Stateless between connections."""
