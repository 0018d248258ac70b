"""The pages in a browser: static files, sessions by cookie, operations of ``/v1``, and sockets."""
