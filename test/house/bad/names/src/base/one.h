/* A room of this name. */
struct one { int of; };
