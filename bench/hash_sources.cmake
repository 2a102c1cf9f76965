# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=... -DLIST=... -DOUT=... -P hash_sources.cmake
# Writes a C++ file with one SHA-256 over the files that LIST names (paths from ROOT, one a line): of the text of all lines
# "HASH  PATH", as sha256sum prints them.
file(STRINGS ${LIST} paths)
set(lines "")
foreach(path ${paths})
    file(SHA256 ${ROOT}/${path} hash)
    string(APPEND lines "${hash}  ${path}\n")
endforeach()
string(SHA256 all "${lines}")
list(LENGTH paths count)
file(WRITE ${OUT} "#include \"bench/build_facts.h\"
namespace gradguard::bench {
SourceHash source_hash() { return {\"${all}\", ${count}}; }
}  // namespace gradguard::bench
")
