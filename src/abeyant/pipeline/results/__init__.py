"""Write results that appear whole or not at all, in directories and on object stores."""
