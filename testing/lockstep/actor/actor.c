// A process of a session: it does what it is told, one call at a time, and says what came of it. See ../README.md.
#include "actor.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>

int slots[SLOTS];
static volatile sig_atomic_t pipes;

static void note_pipe(int signal_number) {
    (void)signal_number;
    pipes = 1;
}

int slot_of(const char *word) {
    int number = atoi(word);
    return number >= 0 && number < SLOTS ? slots[number] : -1;
}

void fill_slot(const char *word, int result) {
    int number = atoi(word), because = errno;
    if (result >= 0 && number >= 0 && number < SLOTS) slots[number] = result;
    errno = because;
    answer_result(result < 0 ? -1 : 0);
}

void answer_result(long result) {
    if (result < 0)
        answer("%ld %s%s", result, strerrorname_np(errno), pipes ? " SIGPIPE" : "");
    else
        answer("%ld", result);
}

void make_bytes(unsigned char *to, unsigned key, size_t offset, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t mixed = (uint32_t)(offset + i) * 2654435761u + key * 40503u;
        to[i] = (unsigned char)(mixed >> 21);
    }
}

uint32_t digest(uint32_t sum, const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

static int split(char *line, char **words) {
    int count = 0;
    for (char *word = strtok(line, " \n"); word && count < WORDS; word = strtok(NULL, " \n")) words[count++] = word;
    return count;
}

// actor PLACE NAME [FD of slot 0, or -] [of slot 1] ...
int main(int count, char **arguments) {
    if (count < 3) return 2;
    for (int i = 0; i < SLOTS; i++) slots[i] = -1;
    for (int i = 3; i < count && i - 3 < SLOTS; i++)
        if (*arguments[i] != '-') slots[i - 3] = atoi(arguments[i]);
    signal(SIGPIPE, note_pipe);
    meet(arguments[1], arguments[2]);
    for (;;) {
        char *words[WORDS] = {0};
        char *line = next_command();
        int words_count = split(line, words);
        if (words_count == 0) continue;
        pipes = 0;
        if (!bytes_command(words, words_count) && !waits_command(words, words_count) && !sockets_command(words, words_count)
            && !processes_command(words, words_count))
            answer("? %s", words[0]);
    }
}
