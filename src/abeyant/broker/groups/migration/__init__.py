"""Groups that change their protocol while members are there."""
