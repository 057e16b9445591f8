// A service for inetd, of the kind that knows nothing of sockets: its standard input and output are a stream of lines each way.
#include <stdio.h>
#include <string.h>

int main(void) {
    char line[4096];
    long number = 0;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = 0;
        if (!strcmp(line, "quit")) break;
        printf("%ld: %s\n", ++number, line);
        fflush(stdout);
    }
    printf("goodbye after %ld\n", number);
    return 0;
}
