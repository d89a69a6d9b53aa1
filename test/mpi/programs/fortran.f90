! The collectives from Fortran, whose library may call the MPI past whoever stands in front of the
! functions of C. In place, too.
program main
  use mpi
  implicit none
  integer :: error, rank, n, i, x(8), y(8), comm
  integer, allocatable :: all(:)
  double precision :: d(3)
  logical :: right
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, n, error)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, error)
  allocate (all(8 * n))
  right = .true.
  x = rank + 1
  call MPI_Allreduce(x, y, 8, MPI_INTEGER, MPI_SUM, comm, error)
  right = right .and. all_are(y, n * (n + 1) / 2)
  call MPI_Allreduce(MPI_IN_PLACE, x, 8, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, error)
  right = right .and. all_are(x, n)
  d = 0.5d0
  call MPI_Allreduce(MPI_IN_PLACE, d, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  right = right .and. d(2) == 0.5d0 * n
  y = rank
  call MPI_Bcast(y, 8, MPI_INTEGER, n - 1, comm, error)
  right = right .and. all_are(y, n - 1)
  all = -1
  x = rank
  call MPI_Allgather(x, 8, MPI_INTEGER, all, 8, MPI_INTEGER, comm, error)
  do i = 1, n
    right = right .and. all(8 * i) == i - 1
  end do
  call MPI_Barrier(comm, error)
  call MPI_Comm_free(comm, error)
  if (rank == 0 .and. right) print '(a)', 'ok'
  call MPI_Finalize(error)
contains
  logical function all_are(v, what)
    integer, intent(in) :: v(:), what
    all_are = count(v == what) == size(v)
  end function
end program
