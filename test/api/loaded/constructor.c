/* A library whose constructor calls the program that loads it. The loader holds its lock
 * meanwhile. */
void in_constructor(void);

__attribute__((constructor)) static void begin(void)
{
    in_constructor();
}
