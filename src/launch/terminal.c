/* Only for --tty: a terminal merges the two streams, has no packets and no signal of its own for
 * each write, and programs behave differently at it (colours, progress bars). It passes on what is
 * written as it is: no carriage returns are added, nothing is echoed.
 * Cost: some 20 us a rank. */
#include "launch/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

int terminal_open(int ends[2])
{
    struct termios modes;
    struct winsize size = { .ws_row = 24, .ws_col = 80 };
    char name[64];
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    ends[1] = -1;
    if (ends[0] < 0)
        return -errno;
    if (grantpt(ends[0]) < 0 || unlockpt(ends[0]) < 0
        || ptsname_r(ends[0], name, sizeof name) != 0
        || (ends[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0
        || tcgetattr(ends[1], &modes) < 0) {
        int error = -errno;
        for (int i = 0; i < 2; i++)
            if (ends[i] >= 0)
                close(ends[i]);
        return error ? error : -ENOTTY;
    }
    modes.c_oflag &= ~(tcflag_t)OPOST;
    modes.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
    tcsetattr(ends[1], TCSANOW, &modes);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (ioctl(fd, TIOCGWINSZ, &size) == 0)
            break;
    ioctl(ends[1], TIOCSWINSZ, &size);
    return 0;
}
