/* A table that others read while its owner does something else. The owner advertises it and answers nobody; the reader finds the row of a key by the
 * hash, and reads it by RDMA. Only the word that it is finished goes as plain bytes.
 *
 *     key_value vi|iwarp      two processes of this host */
#define _DEFAULT_SOURCE
#include "common.h"

#include <sys/wait.h>

#define ROWS 4096
#define TAG 0x7461626c65ull

struct row {
    char key[16];
    char value[48];
};

static unsigned place(const char *key)
{
    unsigned hash = 2166136261u;
    for (; *key; key++) hash = (hash ^ (unsigned char)*key) * 16777619u;
    return hash % ROWS;
}

static void name(char key[16], unsigned number)
{
    snprintf(key, 16, "key%u", number);
}

static void own(int fd)
{
    static struct row table[ROWS];
    uint32_t region;
    char last;
    unsigned number;
    for (number = 0; number < 100; number++) {
        char key[16];
        struct row *row;
        name(key, number);
        for (row = &table[place(key)]; row->key[0]; row = row + 1 < table + ROWS ? row + 1 : table) continue;
        memcpy(row->key, key, sizeof key);
        snprintf(row->value, sizeof row->value, "value of %s", key);
    }
    MUST(sovia_register(fd, table, sizeof table, SOVIA_READ, &region));
    MUST(sovia_advertise(fd, region, TAG));
    /* All that the owner does from here on: it sleeps. */
    if (read(fd, &last, 1) != 1) exit(1);
    MUST(sovia_deregister(fd, region));
}

static void look_up(int fd)
{
    struct row row;
    struct sovia_segment segment;
    struct sovia_remote table;
    unsigned number, reads = 0;
    segment.address = &row;
    segment.length = sizeof row;
    MUST(sovia_register(fd, &row, sizeof row, SOVIA_LOCAL, &segment.region));
    MUST(sovia_find_remote(fd, TAG, 20000, &table));
    for (number = 0; number < 100; number++) {
        char key[16], value[48];
        unsigned at;
        name(key, number);
        for (at = place(key);; at = (at + 1) % ROWS) {
            MUST(sovia_post_read(fd, &segment, 1, &table, (uint64_t)at * sizeof row, number));
            done(fd);
            reads++;
            if (!row.key[0] || strcmp(row.key, key) == 0) break;
        }
        snprintf(value, sizeof value, "value of %s", key);
        if (strcmp(row.value, value) != 0) {
            fprintf(stderr, "%s: %s\n", key, row.value);
            exit(1);
        }
    }
    printf("100 keys, %u reads\n", reads);
    if (write(fd, "!", 1) != 1) exit(1);
}

int main(int count, char **arguments)
{
    unsigned short port;
    int listener, fd, status = 1;
    pid_t child;
    if (count != 2) {
        fprintf(stderr, "usage: key_value vi|iwarp\n");
        return 2;
    }
    listener = listening(&port);
    child = fork();
    MUST(child);
    if (child == 0) {
        fd = calling(port);
        convert(fd, mode_of(arguments[1]));
        look_up(fd);
        MUST(close(fd));
        exit(0);
    }
    MUST(fd = accept(listener, NULL, NULL));
    convert(fd, mode_of(arguments[1]));
    own(fd);
    MUST(close(fd));
    MUST(waitpid(child, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
