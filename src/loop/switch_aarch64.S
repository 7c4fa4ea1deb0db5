/* void stack_switch(void **save_sp, void *load_sp)
 *
 * AAPCS64: stores x19..x30 and d8..d15 below the stack pointer, leaves it in *save_sp and goes on
 * where load_sp was left. */
    .text
    .globl stack_switch
    .type stack_switch, %function
stack_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size stack_switch, .-stack_switch

/* Where a new stack starts: x19 holds the function, x20 its argument. */
    .globl stack_start
    .type stack_start, %function
stack_start:
    mov x0, x20
    mov x29, xzr
    mov x30, xzr
    blr x19
    brk #1
    .size stack_start, .-stack_start
    .section .note.GNU-stack, "", %progbits
