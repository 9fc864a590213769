"""The parts of every report: a self-contained HTML page, tables, tiles, number formats, and the style of figures."""
