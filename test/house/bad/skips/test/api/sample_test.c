static void test_one(void **state)
{
    if (geteuid() != 0)
        skip();
    skip_because("as root only");                     /* skip() in a comment is none */
    _skip(__FILE__, __LINE__);
}
