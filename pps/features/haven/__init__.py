"""Haven: rooms in which a person talks with entities, each answering with its own memory."""
