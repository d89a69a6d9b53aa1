int bad; /* a comment */
