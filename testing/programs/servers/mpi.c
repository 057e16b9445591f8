// MPI over whatever carries it: a ping-pong of all sizes between the first two, and what all do together. Each byte that comes is looked at.
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST = 1 << 22, EACH = 100000, NUMBERS = 256 };

static char bytes[LARGEST], from[8 * EACH], to[8 * EACH];

static void check(int right, const char *what) {
    if (!right) {
        fprintf(stderr, "wrong: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static int filled(const char *bytes, int length, char with) {
    return bytes[0] == with && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static void ping_pong(int rank, int length, int rounds) {
    for (int round = 0; round < rounds; round++) {
        if (rank == 0) {
            memset(bytes, round, length);
            MPI_Send(bytes, length, MPI_BYTE, 1, round, MPI_COMM_WORLD);
        }
        MPI_Recv(bytes, length, MPI_BYTE, 1 - rank, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(filled(bytes, length, round), "ping-pong");
        if (rank == 1)
            MPI_Send(bytes, length, MPI_BYTE, 0, round, MPI_COMM_WORLD);
    }
}

// Of one byte, there and back.
static double a_second(int rank) {
    double began = MPI_Wtime();
    ping_pong(rank, 1, 3000);
    return 3000 / (MPI_Wtime() - began);
}

int main(int argc, char **argv) {
    int rank, ranks;
    double rate = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank < 2)
        for (int length = 1; length <= LARGEST; length *= 4)
            ping_pong(rank, length, length > 100000 ? 10 : 300);
    if (rank < 2)
        rate = a_second(rank);
    for (int round = 0; round < 100; round++) {
        long mine[NUMBERS], sum[NUMBERS];
        for (int at = 0; at < NUMBERS; at++)
            mine[at] = rank * round + at;
        MPI_Allreduce(mine, sum, NUMBERS, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (int at = 0; at < NUMBERS; at++)
            check(sum[at] == (long)ranks * (ranks - 1) / 2 * round + (long)ranks * at, "allreduce");
    }
    for (int round = 0; round < 10; round++) {
        memset(from, rank * 10 + round, sizeof from);
        MPI_Alltoall(from, EACH, MPI_BYTE, to, EACH, MPI_BYTE, MPI_COMM_WORLD);
        for (int other = 0; other < ranks; other++)
            check(filled(to + other * EACH, EACH, other * 10 + round), "alltoall");
    }
    MPI_Finalize();
    if (rank == 0)
        printf("whole, %.0f a second\n", rate);
}
