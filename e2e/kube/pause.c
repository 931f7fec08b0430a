/* What holds a pod's namespaces open: waits until it is told to end. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void end(int number) {
    (void)number;
    _exit(0);
}

int main(void) {
    signal(SIGINT, end);
    signal(SIGTERM, end);
    for (;;) pause();
}
