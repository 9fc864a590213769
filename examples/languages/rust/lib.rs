//! Nothing: the tests are the example.
