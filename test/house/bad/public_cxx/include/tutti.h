int tutti_bad(int class);
