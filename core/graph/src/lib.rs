//! Graph construction, validation, shape inference, placement and partitioning.
