"""The adversarial set: what ``proof`` throws at entities that were made for it, and how a leak is seen."""
