#!/bin/sh
# build.sh FOLDER: makes `server` and `client` of trip.x there. Needs rpcgen, cc and libtirpc's headers.
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
cp "$here/trip.x" "$here/server.c" "$here/client.c" .
# -N: procedures take their arguments as C's do. What is there already rpcgen does not overwrite.
rm -f trip.h trip_xdr.c trip_clnt.c trip_svc.c
rpcgen -N -h -o trip.h trip.x
rpcgen -N -c -o trip_xdr.c trip.x
rpcgen -N -l -o trip_clnt.c trip.x
rpcgen -N -m -o trip_svc.c trip.x
# What rpcgen writes has warnings.
flags="-O2 -w $(pkg-config --cflags libtirpc)"
libraries=$(pkg-config --libs libtirpc)
# shellcheck disable=SC2086 # several each
{
    ${CC:-cc} $flags -o server server.c trip_svc.c trip_xdr.c $libraries
    ${CC:-cc} $flags -o client client.c trip_clnt.c trip_xdr.c $libraries
}
