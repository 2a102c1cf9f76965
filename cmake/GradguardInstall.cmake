# SPDX-License-Identifier: Apache-2.0
# What a depending project links to, from the source tree (add_subdirectory) or installed (find_package):
#   gradguard::gradguard     the library, as much of it as the options turned on (contract section 7)
#   gradguard::virtual_gpu   the virtual GPU as a device; only where GRADGUARD_BENCH built it
option(GRADGUARD_INSTALL "Install the library with its CMake package" ${PROJECT_IS_TOP_LEVEL})

add_library(gradguard_all INTERFACE)
target_link_libraries(gradguard_all INTERFACE gradguard_contract)
set(gradguard_targets gradguard_all gradguard_options gradguard_contract)
set(gradguard_header_folders reference/contract)
if(GRADGUARD_FUSED_ADAMW)
    target_link_libraries(gradguard_all INTERFACE gradguard_host)
    list(APPEND gradguard_targets gradguard_host)
    list(APPEND gradguard_header_folders kernels/host kernels/device)
endif()
if(GRADGUARD_FUSED_ADAMW_DEVICE)
    list(APPEND gradguard_targets gradguard_ptx)
    list(APPEND gradguard_header_folders kernels/ptx)
endif()
if(GRADGUARD_GRADIENT_GUARD)
    target_link_libraries(gradguard_all INTERFACE gradguard_fp64)
    list(APPEND gradguard_targets gradguard_fp64)
    list(APPEND gradguard_header_folders reference/fp64)
endif()
add_library(gradguard::gradguard ALIAS gradguard_all)
if(TARGET gradguard_devices)
    add_library(gradguard::virtual_gpu ALIAS gradguard_devices)
    foreach(part devices observers vgpu)
        if(TARGET gradguard_${part})
            list(APPEND gradguard_targets gradguard_${part})
            list(APPEND gradguard_header_folders harness/${part})
        endif()
    endforeach()
endif()

if(GRADGUARD_INSTALL)
    include(GNUInstallDirs)
    include(CMakePackageConfigHelpers)
    set(gradguard_package ${CMAKE_INSTALL_LIBDIR}/cmake/gradguard)
    # gradguard_host is installed as gradguard::host, and so on.
    foreach(target ${gradguard_targets})
        string(REPLACE "gradguard_" "" exported ${target})
        set_target_properties(${target} PROPERTIES EXPORT_NAME ${exported})
    endforeach()
    set_target_properties(gradguard_all PROPERTIES EXPORT_NAME gradguard)
    if(TARGET gradguard_devices)
        set_target_properties(gradguard_devices PROPERTIES EXPORT_NAME virtual_gpu)
    endif()
    install(TARGETS ${gradguard_targets} EXPORT gradguardTargets
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT gradguardTargets NAMESPACE gradguard:: DESTINATION ${gradguard_package})
    # Includes are written from the project's root, which lies at include/gradguard.
    foreach(folder ${gradguard_header_folders})
        install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gradguard/${folder}
                FILES_MATCHING PATTERN "*.h")
    endforeach()
    configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/gradguardConfig.cmake.in
                                  ${PROJECT_BINARY_DIR}/gradguardConfig.cmake INSTALL_DESTINATION ${gradguard_package})
    write_basic_package_version_file(${PROJECT_BINARY_DIR}/gradguardConfigVersion.cmake
                                     COMPATIBILITY SameMinorVersion)
    install(FILES ${PROJECT_BINARY_DIR}/gradguardConfig.cmake ${PROJECT_BINARY_DIR}/gradguardConfigVersion.cmake
            DESTINATION ${gradguard_package})
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/reference/contract.md
            DESTINATION ${CMAKE_INSTALL_DOCDIR})
    if(TARGET gradguard)
        install(TARGETS gradguard RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
endif()
