"""Groups that change their protocol while they have members."""
