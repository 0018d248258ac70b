"""An entity's page in a browser: static files, a session by cookie, and the operations of ``/v1`` under its path."""
