int tutti_bad(size_t bytes);
