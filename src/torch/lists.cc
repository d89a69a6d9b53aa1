/* All checks run on this rank, before any memory is touched. The library compares the ranks with
 * each other. Cost: one look at each tensor. */
#include "torch/lists.h"

namespace tutti {

void check_alike(const char *what, const Tensors &tensors, const at::Tensor &first)
{
    for (size_t i = 0; i < tensors.size(); i++) {
        const at::Tensor &t = tensors[i];
        if (t.layout() != first.layout())
            refuse(what,
                   c10::str("invalid tensor layout at index ", i, ": ", t.layout(), ", where ",
                            first.layout(), " is expected"));
        if (t.scalar_type() != first.scalar_type() || t.device().type() != first.device().type())
            refuse(what,
                   c10::str("invalid tensor type at index ", i, ": ", t.scalar_type(), " on ",
                            t.device(), ", where ", first.scalar_type(), " on ", first.device(),
                            " is expected"));
        if (t.sizes() != first.sizes())
            refuse(what,
                   c10::str("invalid tensor size at index ", i, ": ", t.sizes(), ", where ",
                            first.sizes(), " is expected"));
    }
}

void check_as_many(const char *what, const Tensors &tensors, const at::Tensor &mine)
{
    for (size_t i = 0; i < tensors.size(); i++) {
        const at::Tensor &t = tensors[i];
        if (t.scalar_type() != mine.scalar_type())
            refuse(what,
                   c10::str("invalid tensor type at index ", i, ": ", t.scalar_type(), ", where ",
                            mine.scalar_type(), " is expected"));
        if (t.numel() != mine.numel())
            refuse(what,
                   c10::str("invalid tensor size at index ", i, ": ", t.sizes(), ", where ",
                            mine.sizes(), " is expected"));
    }
}

void check_root_tensor(const char *what, int64_t which, size_t tensors)
{
    if (which < 0 || (size_t)which >= tensors)
        refuse(what, c10::str("invalid root tensor: ", which, "; there are ", tensors));
}

void single(const char *what, const char *side, size_t n)
{
    if (n != 1)
        refuse(what,
               c10::str("requires a single-element ", side, " list, not one of ", n,
                        ": a rank has one device"));
}

void as_many(const char *what, size_t outputs, size_t inputs)
{
    if (outputs != inputs)
        refuse(what,
               c10::str("requires as many outputs as inputs, not ", outputs, " and ", inputs));
}

Tensors &row_of(const char *what, const char *side, Lists &lists, const at::Tensor &mine,
                size_t ranks, int rank)
{
    if (lists.size() != 1)
        refuse(what,
               c10::str("requires a single-element ", side,
                        " list, which has a tensor for each of ", ranks, " ranks"));
    Tensors &row = lists[0];
    if (row.size() != ranks)
        refuse(what,
               c10::str("Incorrect ", side, " list size ", row.size(), ". ",
                        side[0] == 'i' ? "Input" : "Output", " list size should be ", ranks,
                        ", a tensor for each rank"));
    check_kind(what, mine);
    for (const at::Tensor &t : row)
        check_kind(what, t);
    if (row[rank].scalar_type() != mine.scalar_type())
        refuse(what,
               c10::str("invalid tensor type at index ", rank, ": ", row[rank].scalar_type(),
                        " in the ", side, " list, ", mine.scalar_type(), " beside it"));
    if (row[rank].numel() != mine.numel())
        refuse(what,
               c10::str("invalid tensor size at index ", rank, ": ", row[rank].sizes(), " in the ",
                        side, " list for this rank, ", mine.sizes(), " beside it"));
    return row;
}

}
