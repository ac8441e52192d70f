#!/bin/sh
# Installs Hashrange in a development container, as root while its image is built. MEMORY is the option of
# devcontainer-feature.json, whose variables of SDKs name port 8000 whatever the options are. For tests: ROOT is the folder
# that stands for the container's root, PORT another port.
set -eu
cd "$(dirname "$0")"
root=${ROOT:-}

python=""
for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || { echo "Hashrange needs Python 3.11 or newer with venv: use an image that has it." >&2; exit 1; }

wheel=$(ls hashrange-*.whl 2>/dev/null | head -n 1)
[ -n "$wheel" ] || { echo "Copy a wheel of Hashrange to $(pwd): hashrange-….whl" >&2; exit 1; }

"$python" -m venv "$root/opt/hashrange"
"$root/opt/hashrange/bin/pip" install --quiet "$wheel"
mkdir -p "$root/usr/local/bin"
ln -sf "$root/opt/hashrange/bin/hashrange" "$root/usr/local/bin/hashrange"

store="--memory"
if [ "${MEMORY:-true}" != true ]; then
    # Any user of the container may start the server.
    install -d -m 1777 "$root/var/lib/hashrange"
    store="--data-dir $root/var/lib/hashrange/data"
fi
cat > "$root/usr/local/bin/hashrange-start" <<END
#!/bin/sh
# Starts the server in the background, unless it runs, and waits until it answers.
"$root/usr/local/bin/hashrange" healthcheck --port ${PORT:-8000} > /dev/null 2>&1 && exit 0
nohup "$root/usr/local/bin/hashrange" serve --port ${PORT:-8000} $store > "\${TMPDIR:-/tmp}/hashrange.log" 2>&1 &
exec "$root/usr/local/bin/hashrange" healthcheck --port ${PORT:-8000} --wait 60
END
chmod 755 "$root/usr/local/bin/hashrange-start"
