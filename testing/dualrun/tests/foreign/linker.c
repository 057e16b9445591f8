// Stands for the dynamic linker of another C library: says what it is asked to preload, and runs nothing.
#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n hlt\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n mov x0, sp\n bl begin\n brk 0\n");
#endif
#include <sys/syscall.h>

static long call(long number, long a, long b, long c) {
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#endif
}

__attribute__((used)) void begin(long *stack) {
    char **variables = (char **)(stack + stack[0] + 2);
    const char *asked = "nothing", *name = "LD_PRELOAD=";
    for (; *variables; variables++) {
        long n = 0;
        while (name[n] && (*variables)[n] == name[n]) n++;
        if (!name[n]) asked = *variables;
    }
    long len = 0;
    while (asked[len]) len++;
    call(SYS_write, 1, (long)asked, len);
    call(SYS_exit_group, 0, 0, 0);
}
