"""What a memory is about: topics found where several perspectives agree, and what follows from them."""
