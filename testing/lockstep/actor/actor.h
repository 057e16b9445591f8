// What the rooms of the actor share: its slots, how it answers, and the calls it knows.
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { SLOTS = 48, MOST = 1 << 18, WORDS = 64 };

// Descriptors by the numbers that the session knows them by; -1 where there is none.
extern int slots[SLOTS];

// Answers a command: what a call said, and why it failed, by name.
void answer(const char *format, ...) __attribute__((format(printf, 1, 2)));
void answer_result(long result);

// The descriptor of a slot, -1 if the word names none.
int slot_of(const char *word);
// Puts what a call gave into a slot, and answers.
void fill_slot(const char *word, int result);

// The bytes of a stream: what is sent at each offset is known by the stream's key.
void make_bytes(unsigned char *to, unsigned key, size_t offset, size_t count);
uint32_t digest(uint32_t sum, const unsigned char *bytes, size_t count);

// Each takes the words of a command, of which it knows the first, or does nothing and says so.
int bytes_command(char **words, int count);
int waits_command(char **words, int count);
int sockets_command(char **words, int count);
int processes_command(char **words, int count);

// processes.c: meets the controller.
void meet(const char *place, const char *name);
char *next_command(void);
