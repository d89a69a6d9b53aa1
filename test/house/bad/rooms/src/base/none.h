#define NONE
