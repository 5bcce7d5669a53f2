"""Memory bank, embedders and similarity stores."""
