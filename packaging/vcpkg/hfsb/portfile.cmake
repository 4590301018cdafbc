# An overlay port: vcpkg install hfsb --overlay-ports=packaging/vcpkg
# (or copy this folder to ports/hfsb). SHA512 is that of the release archive.
vcpkg_from_github(
    OUT_SOURCE_PATH SOURCE_PATH
    REPO hfsb/hfsb
    REF "v${VERSION}"
    SHA512 0
    HEAD_REF main
)

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -DHFSB_PROGRAMS=OFF
        -DHFSB_INSTALL=ON
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/hfsb)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage"
    DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
