#!/bin/sh
# Assembles the folder that deploy/Containerfile is built from.
#
#   sh deploy/image.sh BINARY FOLDER
#
# The libraries are those of this machine, so build the binary and the image on the same one.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: sh deploy/image.sh BINARY FOLDER" >&2
    exit 2
fi
binary=$1
folder=$2
certificates=/etc/ssl/certs/ca-certificates.crt

for needed in "$binary" "$certificates"; do
    if [ ! -f "$needed" ]; then
        echo "error: $needed is not a file" >&2
        exit 1
    fi
done
if [ -e "$folder" ] && [ ! -f "$folder/.callboard-image" ]; then
    echo "error: $folder exists and is not a folder of this script; name another one" >&2
    exit 1
fi

rm -rf "$folder"
mkdir -p "$folder/data/callboard" "$folder/root/usr/local/bin" "$folder/root/etc/ssl/certs"
touch "$folder/.callboard-image"
chmod 700 "$folder/data/callboard"
install -m 755 "$binary" "$folder/root/usr/local/bin/callboard"
install -m 644 "$certificates" "$folder/root$certificates"
echo 'callboard:x:10001:10001:Callboard:/var/lib/callboard:/nonexistent' > "$folder/root/etc/passwd"
echo 'callboard:x:10001:' > "$folder/root/etc/group"

# Each line of ldd ends with the address; the path is before it. A static binary has no such lines.
ldd "$binary" | sed -n 's/^[^/]*\(\/[^ ]*\) (0x[0-9a-f]*)$/\1/p' | while read -r library; do
    mkdir -p "$folder/root$(dirname "$library")"
    install -m 755 "$library" "$folder/root$library"
done
