# ragfs_embed(TARGET FILE HEADER FUNCTION): adds `FUNCTION()`, declared in HEADER, to TARGET: the text of FILE.
# The file is read again when it changes.
function(ragfs_embed target file header function)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${file})
  file(READ ${CMAKE_SOURCE_DIR}/${file} text)
  get_filename_component(name ${file} NAME_WE)
  set(made ${CMAKE_BINARY_DIR}/embedded/${name}.cc)
  file(CONFIGURE OUTPUT ${made} @ONLY CONTENT [==[
// Made from @file@.
#include "@header@"

namespace ragfs::server {

std::string_view @function@() { return R"embedded(@text@)embedded"; }

}  // namespace ragfs::server
]==])
  target_sources(${target} PRIVATE ${made})
endfunction()
