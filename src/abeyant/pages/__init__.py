"""Building blocks of reports: a self-contained HTML page, tables, tiles, number formats, and the style of figures."""
