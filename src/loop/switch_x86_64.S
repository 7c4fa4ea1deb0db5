/* void stack_switch(void **save_sp, void *load_sp)
 *
 * System V x86-64: pushes the registers a call must preserve, leaves the stack pointer in
 * *save_sp and goes on where load_sp was left. millrace never changes the floating-point control
 * words, so they are not saved. The return address is popped and jumped to: a `ret` would be
 * mispredicted, because the processor's return stack belongs to the other side. */
    .text
    .globl stack_switch
    .type stack_switch, @function
stack_switch:
    .cfi_startproc
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmp *%rcx
    .cfi_endproc
    .size stack_switch, .-stack_switch

/* Where a new stack starts: rbx holds the function, r12 its argument. Debuggers stop
 * unwinding here. */
    .globl stack_start
    .type stack_start, @function
stack_start:
    .cfi_startproc
    .cfi_undefined rip
    movq %r12, %rdi
    xorl %ebp, %ebp
    call *%rbx
    ud2
    .cfi_endproc
    .size stack_start, .-stack_start
    .section .note.GNU-stack, "", @progbits
