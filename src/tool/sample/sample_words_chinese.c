#include "tool/sample/sample_words.h"

/* --- medicine --- */

static const struct sample_topic medicine[] = {
    {"儿科学", SAMPLE_LIST("儿童肥胖", "学龄期儿童哮喘", "早产儿喂养不耐受", "青少年1型糖尿病"),
     SAMPLE_LIST("含糖饮料摄入", "每日屏幕时间", "家庭生活方式干预", "母乳喂养时长"),
     SAMPLE_LIST("体质指数", "肺功能", "血糖控制水平", "再入院率")},
    {"心血管病学",
     SAMPLE_LIST("射血分数保留型心力衰竭", "心房颤动", "难治性高血压", "急性冠脉综合征"),
     SAMPLE_LIST("限盐饮食", "早期节律控制", "远程血压监测", "运动康复训练"),
     SAMPLE_LIST("心血管死亡率", "卒中复发率", "左心室应变", "生活质量评分")},
};

const struct sample_field sample_medicine_zh = {
    .tag = "医学",
    .language = SAMPLE_CHINESE,
    .topics = medicine,
    .topic_count = sizeof medicine / sizeof *medicine,
    .methods = SAMPLE_LIST("多因素Cox回归", "倾向性评分匹配", "随机双盲对照设计", "混合效应模型"),
    .materials = SAMPLE_LIST("三级甲等医院住院患者", "社区卫生服务中心随访人群", "区域出生队列",
                             "医保数据库中的成年人"),
};

/* --- materials --- */

static const struct sample_topic materials[] = {
    {"光伏材料",
     SAMPLE_LIST("钙钛矿太阳能电池", "全无机钙钛矿薄膜", "硅基叠层器件", "有机光伏共混膜"),
     SAMPLE_LIST("表面钝化", "离子迁移", "水氧侵蚀", "晶界调控"),
     SAMPLE_LIST("长期稳定性", "光电转换效率", "开路电压", "载流子寿命")},
    {"电池与储能", SAMPLE_LIST("锂金属负极", "高镍三元正极", "钠离子电池", "固态电解质"),
     SAMPLE_LIST("含氟添加剂", "人工界面层", "快充制度", "原子层包覆"),
     SAMPLE_LIST("容量保持率", "库仑效率", "枝晶生长", "界面阻抗")},
};

const struct sample_field sample_materials_zh = {
    .tag = "材料科学",
    .language = SAMPLE_CHINESE,
    .topics = materials,
    .topic_count = sizeof materials / sizeof *materials,
    .methods = SAMPLE_LIST("密度泛函理论计算", "原位X射线衍射", "透射电子显微镜", "电化学阻抗谱"),
    .materials = SAMPLE_LIST("不同厚度的溶液法样品", "扣式电池", "柔性衬底薄膜", "加速老化试样"),
};

/* --- computing --- */

static const struct sample_topic computing[] = {
    {"机器学习", SAMPLE_LIST("图神经网络", "联邦学习系统", "大语言模型", "深度强化学习智能体"),
     SAMPLE_LIST("标签噪声", "分布偏移", "低秩适配", "知识蒸馏"),
     SAMPLE_LIST("泛化精度", "样本效率", "对抗鲁棒性", "推理时延")},
    {"信息安全", SAMPLE_LIST("勒索软件检测", "智能合约审计", "匿名凭证方案", "侧信道防护"),
     SAMPLE_LIST("静态污点分析", "覆盖率引导的模糊测试", "硬件可信环境", "代码混淆"),
     SAMPLE_LIST("误报率", "检测延迟", "验证开销", "漏洞覆盖率")},
};

const struct sample_field sample_computing_zh = {
    .tag = "计算机科学",
    .language = SAMPLE_CHINESE,
    .topics = computing,
    .topic_count = sizeof computing / sizeof *computing,
    .methods = SAMPLE_LIST("消融实验", "轨迹驱动仿真", "形式化模型检验", "大规模基准测试"),
    .materials = SAMPLE_LIST("公开基准数据集", "云平台运行日志", "活跃开源项目", "合成负载"),
};

/* --- environment --- */

static const struct sample_topic environment[] = {
    {"水环境", SAMPLE_LIST("河流微塑料", "湖泊富营养化", "地下水硝酸盐", "人工湿地"),
     SAMPLE_LIST("暴雨径流", "磷负荷", "生物炭投加", "高级氧化"),
     SAMPLE_LIST("去除效率", "藻类生物量", "溶解氧", "生态风险商值")},
    {"大气污染", SAMPLE_LIST("细颗粒物", "近地面臭氧", "船舶排放", "农业氨排放"),
     SAMPLE_LIST("逆温过程", "清洁取暖政策", "区域传输", "电动公交推广"),
     SAMPLE_LIST("人群暴露水平", "能见度", "呼吸系统疾病入院量", "二次气溶胶产率")},
};

const struct sample_field sample_environment_zh = {
    .tag = "环境科学",
    .language = SAMPLE_CHINESE,
    .topics = environment,
    .topic_count = sizeof environment / sizeof *environment,
    .methods = SAMPLE_LIST("高分辨率遥感反演", "贝叶斯层次模型", "稳定同位素示踪", "化学传输模式"),
    .materials = SAMPLE_LIST("长期定位监测站", "十二个流域的沉积物柱样", "中等城市传感网络",
                             "卫星与地面联合观测"),
};
