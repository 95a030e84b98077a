/* bcryptprimitives.dll for a wine that lacks it: Rust's standard library takes random numbers from there. */
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T n)
{
    return SystemFunction036(data, (ULONG)n);
}
