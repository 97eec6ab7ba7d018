/* Included into all of build/coverage: gcov counts what ends by exit(), this also what
 * ends by a signal that it has caught. No header of the system may come before the
 * sources' own. */
#define raise counted_raise
void __gcov_dump(void);
int counted_kill(int process, int number) __asm__("kill");
int counted_self(void) __asm__("getpid");
__attribute__((weak)) int counted_raise(int number);

__attribute__((weak)) int
counted_raise(int number)
{
    __gcov_dump();
    return counted_kill(counted_self(), number);
}
