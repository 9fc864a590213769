"""Complete or expire, as a Spark operator: whole `tables`, `streams`, and `either` of them."""
