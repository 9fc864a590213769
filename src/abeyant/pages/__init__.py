"""What every report is made of: a page that needs no network, its words and tables, and the look of its figures."""
