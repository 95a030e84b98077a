# Written by `make gen` from the schemas of the operators: do not edit.
from ._C import _linalg as _ops
from ._errors import LinAlgError as LinAlgError

cholesky = _ops.cholesky
cholesky_ex = _ops.cholesky_ex
cond = _ops.cond
cross = _ops.cross
det = _ops.det
diagonal = _ops.diagonal
eig = _ops.eig
eigh = _ops.eigh
eigvals = _ops.eigvals
eigvalsh = _ops.eigvalsh
householder_product = _ops.householder_product
inv = _ops.inv
inv_ex = _ops.inv_ex
ldl_factor = _ops.ldl_factor
ldl_factor_ex = _ops.ldl_factor_ex
ldl_solve = _ops.ldl_solve
lstsq = _ops.lstsq
lu = _ops.lu
lu_factor = _ops.lu_factor
lu_factor_ex = _ops.lu_factor_ex
lu_solve = _ops.lu_solve
matmul = _ops.matmul
matrix_exp = _ops.matrix_exp
matrix_norm = _ops.matrix_norm
matrix_power = _ops.matrix_power
matrix_rank = _ops.matrix_rank
multi_dot = _ops.multi_dot
norm = _ops.norm
pinv = _ops.pinv
qr = _ops.qr
slogdet = _ops.slogdet
solve = _ops.solve
solve_ex = _ops.solve_ex
solve_triangular = _ops.solve_triangular
svd = _ops.svd
svdvals = _ops.svdvals
tensorinv = _ops.tensorinv
tensorsolve = _ops.tensorsolve
vander = _ops.vander
vecdot = _ops.vecdot
vector_norm = _ops.vector_norm
